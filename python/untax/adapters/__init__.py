"""untax within frameworks: plugins that SGLang and vLLM load by themselves, and an override for torchtitan
(docs/frameworks.md).

A module named after a framework has its entry point. A module imports its framework only when the framework runs it.
"""
