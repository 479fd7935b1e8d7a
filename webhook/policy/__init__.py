"""The policy engine: MutatingAdmissionPolicy and ValidatingAdmissionPolicy, from files, as Kubernetes means them."""
