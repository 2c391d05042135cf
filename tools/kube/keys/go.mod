// The keys and certificates of a control plane for tests. A module of its own: it needs nothing but Go.
module jackfield.dev/kube/keys

go 1.24
