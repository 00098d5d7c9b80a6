"""One module per data set: loading only, no preprocessing, no batching."""
