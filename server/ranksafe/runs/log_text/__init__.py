"""The text of a log of many ranks, from bytes to what each rank said, in constant memory."""
