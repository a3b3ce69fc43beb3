"""What the benchmarks share. Standard library only."""
