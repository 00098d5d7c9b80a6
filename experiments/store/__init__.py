"""Training examples in an object store: put there, served slowly, read back.

```python
objects.put(workload, "s3://bucket/digits")
workload = objects.stored(workload, "s3://bucket/digits")  # reads from there

store = process.start(latency_ms=30)  # an S3 server on the loopback: moto's
store.fill(workload)
workload = store.holding(workload)
store.counts()  # {"requests": 2594, "bytes": 311232}
```
"""
