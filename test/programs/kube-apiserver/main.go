// Keeps what kube-apiserver is built of in go.mod. build.sh builds the program itself: k8s.io/kubernetes/cmd/kube-apiserver.
package main

import _ "k8s.io/kubernetes/cmd/kube-apiserver/app"

func main() {}
