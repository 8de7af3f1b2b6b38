"""One frozen SPEC for each kernel."""
