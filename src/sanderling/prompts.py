"""The import path of smolagents 1.4 for prompts: the texts of ``agents/prompts/*.yaml`` by name."""

from .agents._prompts import load_texts

_CODE, _TOOLS, _FACTS = map(load_texts, ("code_agent", "toolcalling_agent", "facts"))

CODE_SYSTEM_PROMPT = _CODE["system_prompt"]
TOOL_CALLING_SYSTEM_PROMPT = _TOOLS["system_prompt"]
MANAGED_AGENT_PROMPT = _CODE["managed_agent.task"]
SYSTEM_PROMPT_FACTS = _FACTS["initial_facts"]
SYSTEM_PROMPT_FACTS_UPDATE = _FACTS["update_facts_pre_messages"]
USER_PROMPT_FACTS_UPDATE = _FACTS["update_facts_post_messages"]
SYSTEM_PROMPT_PLAN = _FACTS["plan"]
USER_PROMPT_PLAN = _CODE["planning.initial_plan"]
SYSTEM_PROMPT_PLAN_UPDATE = _CODE["planning.update_plan_pre_messages"]
USER_PROMPT_PLAN_UPDATE = _CODE["planning.update_plan_post_messages"]
PLAN_UPDATE_FINAL_PLAN_REDACTION = _FACTS["new_plan"]

__all__ = [
    "CODE_SYSTEM_PROMPT",
    "MANAGED_AGENT_PROMPT",
    "PLAN_UPDATE_FINAL_PLAN_REDACTION",
    "SYSTEM_PROMPT_FACTS",
    "SYSTEM_PROMPT_FACTS_UPDATE",
    "SYSTEM_PROMPT_PLAN",
    "SYSTEM_PROMPT_PLAN_UPDATE",
    "TOOL_CALLING_SYSTEM_PROMPT",
    "USER_PROMPT_FACTS_UPDATE",
    "USER_PROMPT_PLAN",
    "USER_PROMPT_PLAN_UPDATE",
]
