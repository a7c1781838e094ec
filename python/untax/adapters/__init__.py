"""untax within frameworks: plugins that SGLang and vLLM load by themselves, and an override that torchtitan is given
(docs/frameworks.md).

A module named after a framework has its entry point. Nothing of a framework is imported before the framework runs it.
"""
