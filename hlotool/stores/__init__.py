"""Object stores and web servers (`s3://…`, `gs://…`, `https://…`), through fsspec: read, listed, written."""
