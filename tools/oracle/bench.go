package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A benchCase is a world with many nodes. Its claims are allocated one after the other; what they get is in use
// for the next. Mode "first" tries nodes round-robin until one fits; mode "all" asks every node, then takes
// the first that fits. The answer: seconds, the node of each claim ("" where none fits), how many fitted.
type benchCase struct {
	world
	Nodes []*v1.Node `json:"nodes"`
	Mode  string     `json:"mode"`
}

type benchRun struct {
	one      *benchCase
	features structured.Features
	state    structured.AllocatedState
	cache    *cel.Cache
	next     int
	chosen   []string
	fitting  []int
}

// kube-scheduler keeps so many expressions compiled.
const schedulerExpressions = 10

func bench(raw []byte, out line) error {
	var one benchCase
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	if one.Mode != "first" && one.Mode != "all" {
		return fmt.Errorf("mode: %q is neither first nor all", one.Mode)
	}
	features, err := one.features()
	if err != nil {
		return err
	}
	state, err := one.state()
	if err != nil {
		return err
	}
	applyDefaults(one.Claims)
	key := cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}
	run := benchRun{one: &one, features: features, state: state, cache: cel.NewCache(schedulerExpressions, key)}
	began := time.Now()
	for _, claim := range one.Claims {
		if err := run.serve(claim); err != nil {
			return err
		}
	}
	seconds := time.Since(began).Seconds()
	for name := range out {
		delete(out, name)
	}
	out["seconds"] = encoded(seconds)
	out["nodes"] = encoded(run.chosen)
	if one.Mode == "all" {
		out["fitting"] = encoded(run.fitting)
	}
	return nil
}

func (r *benchRun) serve(claim *resourceapi.ResourceClaim) error {
	ctx := context.Background()
	// One allocator for each claim, as the scheduler makes one for each pod.
	allocator, err := structured.NewAllocator(ctx, r.features, r.state, r.one.lister(), r.one.Slices, r.cache)
	if err != nil {
		return err
	}
	var taken *resourceapi.AllocationResult
	node, fitting := "", 0
	for range r.one.Nodes {
		candidate := r.one.Nodes[r.next%len(r.one.Nodes)]
		r.next++
		results, err := allocator.Allocate(ctx, candidate, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return fmt.Errorf("claim %s: %w", claim.Name, err)
		}
		if len(results) == 0 {
			continue
		}
		fitting++
		if taken == nil {
			taken, node = &results[0], candidate.Name
		}
		if r.one.Mode == "first" {
			break
		}
	}
	r.chosen = append(r.chosen, node)
	r.fitting = append(r.fitting, fitting)
	if taken != nil {
		r.hold(taken)
	}
	return nil
}

func (r *benchRun) hold(allocation *resourceapi.AllocationResult) {
	for _, one := range allocation.Devices.Results {
		id := structured.MakeDeviceID(one.Driver, one.Pool, one.Device)
		if one.ShareID == nil {
			r.state.AllocatedDevices.Insert(id)
			continue
		}
		r.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, one.ShareID))
		r.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, one.ConsumedCapacity))
	}
}
