// The oracle: what Kubernetes' own code makes of a case, as JSON lines in and out.
//
//	oracle allocate   claims, slices, classes and a node: the allocation, or the error
//	oracle cel        an expression and a device: the answer, the error, the cost
//
// The format is that of `jackfield dra`, described in docs/dra.md. A line that cannot be read gets an
// error of its own, and the next one is read.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// A line is a case with everything that was in it, read or not, so that nothing gets lost on the way.
type line = map[string]json.RawMessage

// Each command fills in what it found.
var commands = map[string]func(raw []byte, out line) error{
	"allocate": allocate,
	"cel":      evaluate,
}

func main() {
	var command func([]byte, line) error
	if len(os.Args) == 2 {
		command = commands[os.Args[1]]
	}
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle allocate | cel, with cases on standard input")
		os.Exit(2)
	}
	if err := serve(os.Stdin, os.Stdout, command); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer, command func([]byte, line) error) error {
	reader, writer := bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(out)
	for number := 1; ; number++ {
		raw, err := reader.ReadBytes('\n')
		if len(raw) > 0 {
			answer, encodeErr := json.Marshal(answerTo(raw, number, command))
			if encodeErr != nil {
				return encodeErr
			}
			if _, writeErr := writer.Write(append(answer, '\n')); writeErr != nil {
				return writeErr
			}
			if flushErr := writer.Flush(); flushErr != nil {
				return flushErr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func answerTo(raw []byte, number int, command func([]byte, line) error) line {
	out := line{}
	err := json.Unmarshal(raw, &out)
	if err == nil {
		err = command(raw, out)
	}
	if err != nil {
		return line{"error": encoded(err.Error()), "line": encoded(number)}
	}
	return out
}

// encoded is for values that can always be encoded: texts, numbers and API types.
func encoded(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}
