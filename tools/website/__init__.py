"""The pages of the documentation site, made of what the repository has; ``tools/site_hook.py`` hands them to mkdocs."""
