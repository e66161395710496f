"""A run as one HTML file: opens offline, loads nothing, prints, speaks both languages, follows the light and the dark.

Text of a log or of a script only ever gets into a page through `ranksafe.runs.report.elements`, which escapes it.
"""
