package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

const (
	// kube-scheduler gives a node so long before it gives up the whole cycle.
	filterTimeout = 10 * time.Second
	// Expressions that are kept compiled: more than the scheduler's ten, since cases bring ever new ones.
	expressionsMax = 1000
)

type world struct {
	Features                 []string                                                   `json:"features"`
	Classes                  []*resourceapi.DeviceClass                                 `json:"classes"`
	Claims                   []*resourceapi.ResourceClaim                               `json:"claims"`
	Slices                   []*resourceapi.ResourceSlice                               `json:"slices"`
	AllocatedDevices         []string                                                   `json:"allocatedDevices"`
	AllocatedSharedDeviceIDs []string                                                   `json:"allocatedSharedDeviceIDs"`
	AggregatedCapacity       map[string]map[resourceapi.QualifiedName]resource.Quantity `json:"aggregatedCapacity"`
}

type allocateCase struct {
	world
	Node *v1.Node `json:"node"`
}

func init() {
	// The scheduler's default gates lead to "incubating". With few gates the module would pick "stable", which
	// tries pools in random order; lists of attributes are known to "experimental" alone.
	structured.EnableAllocators("incubating", "experimental")
}

func allocate(raw []byte, out line) error {
	var one allocateCase
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	if one.Node == nil {
		one.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   "node-1",
			Labels: map[string]string{"region": "region-1", "planet": "earth"},
		}}
	}
	state, err := one.state()
	if err != nil {
		return err
	}
	features, err := one.features()
	if err != nil {
		return err
	}
	applyDefaults(one.Claims)
	results, err := attempt(&one, features, state)
	out["results"] = encoded(results)
	out["error"] = encoded(words(err))
	return nil
}

func attempt(one *allocateCase, features structured.Features, state structured.AllocatedState) (results []resourceapi.AllocationResult, err error) {
	defer func() {
		if found := recover(); found != nil {
			results, err = nil, fmt.Errorf("panic: %v", found)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), filterTimeout)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, state, one.lister(), one.Slices, cacheFor(features))
	if err != nil {
		return nil, err
	}
	return allocator.Allocate(ctx, one.Node, one.Claims)
}

func words(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out: " + err.Error()
	default:
		return err.Error()
	}
}

// applyDefaults does what the API server does before anything is stored.
func applyDefaults(claims []*resourceapi.ResourceClaim) {
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			if one := request.Exactly; one != nil {
				defaultCount(&one.AllocationMode, &one.Count, one.Tolerations)
			}
			for j := range request.FirstAvailable {
				one := &request.FirstAvailable[j]
				defaultCount(&one.AllocationMode, &one.Count, one.Tolerations)
			}
		}
	}
}

func defaultCount(mode *resourceapi.DeviceAllocationMode, count *int64, tolerations []resourceapi.DeviceToleration) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
		}
	}
}

func (w *world) features() (structured.Features, error) {
	var features structured.Features
	switches := map[string]*bool{
		"DRAAdminAccess":          &features.AdminAccess,
		"DRAConsumableCapacity":   &features.ConsumableCapacity,
		"DRADeviceTaints":         &features.DeviceTaints,
		"DRAListTypeAttributes":   &features.ListTypeAttributes,
		"DRAPartitionableDevices": &features.PartitionableDevices,
		"DRAPrioritizedList":      &features.PrioritizedList,
		"DRADeviceBindingConditions+DRAResourceClaimDeviceStatus": &features.DeviceBindingAndStatus,
	}
	for _, name := range w.Features {
		if switches[name] == nil {
			return features, fmt.Errorf("features: there is no %q", name)
		}
		*switches[name] = true
	}
	return features, nil
}

func (w *world) state() (structured.AllocatedState, error) {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, text := range w.AllocatedDevices {
		id, err := deviceID(text)
		if err != nil {
			return state, fmt.Errorf("allocatedDevices: %w", err)
		}
		state.AllocatedDevices.Insert(id)
	}
	for _, text := range w.AllocatedSharedDeviceIDs {
		last := strings.LastIndex(text, "/")
		if last < 0 {
			return state, fmt.Errorf("allocatedSharedDeviceIDs: %q is not driver/pool/device/share", text)
		}
		id, err := deviceID(text[:last])
		if err != nil {
			return state, fmt.Errorf("allocatedSharedDeviceIDs: %w", err)
		}
		share := types.UID(text[last+1:])
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
	}
	for text, used := range w.AggregatedCapacity {
		id, err := deviceID(text)
		if err != nil {
			return state, fmt.Errorf("aggregatedCapacity: %w", err)
		}
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, used))
	}
	return state, nil
}

// deviceID reads driver/pool/device; only a pool may have a slash in its name.
func deviceID(text string) (structured.DeviceID, error) {
	first, last := strings.Index(text, "/"), strings.LastIndex(text, "/")
	if first == last {
		return structured.DeviceID{}, fmt.Errorf("%q is not driver/pool/device", text)
	}
	return structured.MakeDeviceID(text[:first], text[first+1:last], text[last+1:]), nil
}

type lister []*resourceapi.DeviceClass

func (w *world) lister() lister { return w.Classes }

func (l lister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, one := range l {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, errors.New("not found")
}

var caches = map[cel.Features]*cel.Cache{}

func cacheFor(features structured.Features) *cel.Cache {
	key := cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	}
	if caches[key] == nil {
		caches[key] = cel.NewCache(expressionsMax, key)
	}
	return caches[key]
}
