"""What a run of a program exercised: which outcomes its decisions had."""
