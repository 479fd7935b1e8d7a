package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// question is a CEL expression and the value of its variable `object`.
type question struct {
	Expression string         `json:"expression"`
	Object     map[string]any `json:"object"`
}

// answer has the refusal of the compiler, or the error of the evaluation, or the value.
type answer struct {
	Refused string `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	Value   []any  `json:"value,omitempty"`
}

// evaluate reads questions, one JSON text a line, and answers each as admission policies are evaluated: in the
// environment for new expressions of this version, with an untyped object.
func evaluate([]string) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
		})
	if err != nil {
		log.Fatal(err)
	}
	env := set.NewExpressionsEnv()
	lines, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		asked := question{}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(answered(env, asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func answered(env *cel.Env, asked question) (given answer) {
	defer func() {
		if problem := recover(); problem != nil {
			given = answer{Error: fmt.Sprint("panic: ", problem)}
		}
	}()
	ast, issues := env.Compile(asked.Expression)
	if issues.Err() != nil {
		return answer{Refused: issues.Err().Error()}
	}
	program, err := env.Program(ast)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	value, _, err := program.Eval(map[string]any{"object": plain(asked.Object)})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Value: typed(value)}
}

// plain has the numbers of a JSON value as the API server's decoder has them: int64, or float64.
func plain(value any) any {
	switch known := value.(type) {
	case map[string]any:
		for name, field := range known {
			known[name] = plain(field)
		}
	case []any:
		for index, element := range known {
			known[index] = plain(element)
		}
	case json.Number:
		if number, err := known.Int64(); err == nil {
			return number
		}
		number, _ := known.Float64()
		return number
	}
	return value
}

// typed is a value with the name of its type before it; entries of maps are in the order of their keys.
func typed(value ref.Val) []any {
	switch known := value.(type) {
	case types.Bytes:
		return []any{"bytes", base64.StdEncoding.EncodeToString(known)}
	case types.Double:
		return []any{"double", strconv.FormatFloat(float64(known), 'g', 17, 64)}
	case types.Timestamp:
		return []any{"timestamp", known.Unix(), known.Nanosecond()}
	case types.Duration:
		return []any{"duration", known.Nanoseconds()}
	case *types.Type:
		return []any{"type", known.TypeName()}
	case *types.Optional:
		if known.HasValue() {
			return []any{"optional", typed(known.GetValue())}
		}
		return []any{"optional"}
	case traits.Lister:
		elements := []any{"list"}
		for each := known.Iterator(); each.HasNext() == types.True; {
			elements = append(elements, typed(each.Next()))
		}
		return elements
	case traits.Mapper:
		entries := []any{}
		for each := known.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			entries = append(entries, []any{typed(key), typed(known.Get(key))})
		}
		sort.Slice(entries, func(i, j int) bool { return fmt.Sprint(entries[i]) < fmt.Sprint(entries[j]) })
		return []any{"map", entries}
	}
	return []any{value.Type().TypeName(), fmt.Sprint(value.Value())}
}
