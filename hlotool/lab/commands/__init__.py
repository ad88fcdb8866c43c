"""The functions of the API behind the lab's commands."""
