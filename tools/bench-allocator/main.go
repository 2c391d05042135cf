// The Go side of `make bench-allocator`: Kubernetes' own allocator, asked about many nodes.
//
// It reads a command a line and answers each with a line, so that it can take turns with another allocator:
//
//	{"load": {nodes, slices, classes, claims}}   {"loaded": true}
//	{"run": "first"}                             {"seconds": …, "claims": [{"node", "devices", "fitting"}, …]}
//	{"run": "all"}                               likewise
//
// Every run begins with all devices free. Claims are served one after the other, and what one gets is in use for the
// next. "first" tries nodes round-robin until one fits; "all" asks every node, then takes the first that fits.
// Seconds are processor time, all that the process used while claims were served, not while commands were read or
// answers written. Compiled selectors are kept from run to run, as kube-scheduler keeps them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// kube-scheduler keeps so many expressions compiled.
const schedulerExpressions = 10

// What kube-scheduler 1.36 has on by default; it then uses the variant called incubating.
var features = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

var celFeatures = cel.Features{EnableConsumableCapacity: true}

type world struct {
	Nodes   []*v1.Node                   `json:"nodes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes classes                      `json:"classes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
}

type command struct {
	Load *world `json:"load"`
	Run  string `json:"run"`
}

type served struct {
	Node    string   `json:"node"`
	Devices []string `json:"devices"`
	Fitting int      `json:"fitting"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, one := range c {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, fmt.Errorf("device class %q not found", name)
}

func main() {
	// The compiler is made when it is first used. That is start-up, which does not count.
	cel.GetCompiler(celFeatures).CompileCELExpression("true", cel.Options{})
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench-allocator:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	cache := cel.NewCache(schedulerExpressions, celFeatures)
	commands, answers := json.NewDecoder(bufio.NewReaderSize(in, 1<<20)), json.NewEncoder(out)
	var current *world
	for {
		var one command
		err := commands.Decode(&one)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if one.Load != nil {
			current = one.Load
			if err := answers.Encode(map[string]bool{"loaded": true}); err != nil {
				return err
			}
			continue
		}
		if current == nil || (one.Run != "first" && one.Run != "all") {
			return fmt.Errorf("nothing to do for %q", one.Run)
		}
		seconds, claims, err := run(current, one.Run == "all", cache)
		if err != nil {
			return err
		}
		if err := answers.Encode(map[string]any{"seconds": seconds, "claims": claims}); err != nil {
			return err
		}
	}
}

func run(w *world, all bool, cache *cel.Cache) (float64, []served, error) {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	claims := make([]served, 0, len(w.Claims))
	next := 0
	began := used()
	for _, claim := range w.Claims {
		one, err := place(w, claim, all, &next, state, cache)
		if err != nil {
			return 0, nil, fmt.Errorf("claim %s: %w", claim.Name, err)
		}
		claims = append(claims, one)
	}
	return (used() - began).Seconds(), claims, nil
}

// used returns the processor time that the process has taken, collecting garbage included.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func place(
	w *world, claim *resourceapi.ResourceClaim, all bool, next *int, state structured.AllocatedState, cache *cel.Cache,
) (served, error) {
	ctx := context.Background()
	one := served{Devices: []string{}}
	// One allocator for each claim, as the scheduler makes one for each pod.
	allocator, err := structured.NewAllocator(ctx, features, state, w.Classes, w.Slices, cache)
	if err != nil {
		return one, err
	}
	var taken []structured.DeviceID
	for range w.Nodes {
		node := w.Nodes[*next%len(w.Nodes)]
		*next++
		results, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return one, err
		}
		if len(results) == 0 {
			continue
		}
		one.Fitting++
		if one.Fitting == 1 {
			one.Node = node.Name
			for _, device := range results[0].Devices.Results {
				taken = append(taken, structured.MakeDeviceID(device.Driver, device.Pool, device.Device))
			}
		}
		if !all {
			break
		}
	}
	for _, id := range taken {
		state.AllocatedDevices.Insert(id)
		one.Devices = append(one.Devices, id.String())
	}
	return one, nil
}
