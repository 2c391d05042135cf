package main

import (
	"context"
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

type celCase struct {
	Expression               string                                                    `json:"expression"`
	Driver                   string                                                    `json:"driver"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Lists                    bool                                                      `json:"lists"`
}

type celAnswer struct {
	match        bool
	maxCost      uint64
	actualCost   *uint64
	outputType   string
	compileError string
	matchError   string
}

func evaluate(raw []byte, out line) error {
	var one celCase
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	answer := answerFor(one)
	out["match"] = encoded(answer.match)
	out["maxCost"] = encoded(answer.maxCost)
	for name, text := range map[string]string{
		"compileError": answer.compileError,
		"matchError":   answer.matchError,
		"outputType":   answer.outputType,
	} {
		delete(out, name)
		if text != "" {
			out[name] = encoded(text)
		}
	}
	delete(out, "actualCost")
	if answer.actualCost != nil {
		out["actualCost"] = encoded(*answer.actualCost)
	}
	return nil
}

func answerFor(one celCase) (answer celAnswer) {
	defer func() {
		if found := recover(); found != nil {
			answer.match, answer.matchError = false, fmt.Sprintf("panic: %v", found)
		}
	}()
	features := cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: one.Lists}
	compiled := compilerFor(features).CompileCELExpression(one.Expression, cel.Options{})
	if compiled.Error != nil {
		return celAnswer{compileError: compiled.Error.Detail}
	}
	answer.maxCost = compiled.MaxCost
	answer.outputType = compiled.OutputType.String()
	match, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   one.Driver,
		AllowMultipleAllocations: one.AllowMultipleAllocations,
		Attributes:               one.Attributes,
		Capacity:                 one.Capacity,
	})
	answer.match = match
	if err != nil {
		answer.matchError = err.Error()
	}
	if details != nil {
		answer.actualCost = details.ActualCost()
	}
	return answer
}

type compiler interface {
	CompileCELExpression(expression string, options cel.Options) cel.CompilationResult
}

var compilers = map[cel.Features]compiler{}

// compilerFor keeps one compiler for each set of gates: the module itself keeps only the last.
func compilerFor(features cel.Features) compiler {
	if compilers[features] == nil {
		compilers[features] = cel.GetCompiler(features)
	}
	return compilers[features]
}
