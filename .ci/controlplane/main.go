// One binary that is the whole control plane for the tests: etcd, the API server, the controller manager, the
// scheduler and kubectl, each started by its name as argv[0] or as the first argument (as BusyBox does). Beside
// them, `cel` evaluates expressions with the API server's own library.
// One link step instead of five: most of the code is shared, and the machine that builds it has two cores.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// server runs a command as the servers' own mains do, and ends the process with its exit status.
func server(command func() *cobra.Command) func([]string) {
	return func(arguments []string) {
		os.Args = arguments
		os.Exit(cli.Run(command()))
	}
}

// client runs kubectl as its own main does: it prints its errors itself, once.
func client(arguments []string) {
	os.Args = arguments
	util.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	os.Exit(0)
}

var programs = map[string]func([]string){
	"etcd":                    etcdmain.Main,
	"kube-apiserver":          server(apiserver.NewAPIServerCommand),
	"kube-controller-manager": server(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 client,
	"cel":                     evaluate,
}

func names() string {
	list := make([]string, 0, len(programs))
	for name := range programs {
		list = append(list, name)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

func main() {
	arguments := append([]string{}, os.Args...)
	arguments[0] = filepath.Base(arguments[0])
	run, found := programs[arguments[0]]
	if !found && len(arguments) > 1 {
		arguments = arguments[1:]
		run, found = programs[arguments[0]]
	}
	if !found {
		fmt.Fprintln(os.Stderr, "usage: controlplane PROGRAM [ARGUMENT…], where PROGRAM is one of", names())
		os.Exit(2)
	}
	run(arguments)
}
