"""What users of the package test with: conformance suites for adapter authors; public."""
