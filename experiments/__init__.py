"""What is claimed against what is seen: files, grids, claims, verdicts, plots, command line."""
