"""Runs of training programs under the real Lightning runtime on a CPU."""
