"""Instructor: `create` with a response model. Tool calls and results are given in the service's own form, so
that only conversations of texts are asked."""

import instructor
from anthropic import Anthropic
from openai import OpenAI
from pydantic import BaseModel


class Answer(BaseModel):
    text: str


def ask(dialect, url, model, messages, look):
    if dialect == "gemini" or len(messages) == 1 or not all(map(is_text, messages)):
        raise NotImplementedError("what isn't text is given in the service's own form")
    if dialect == "anthropic":
        client = instructor.from_anthropic(Anthropic(base_url=url, api_key="k", max_retries=0))
    else:
        client = instructor.from_openai(OpenAI(base_url=url + "/v1", api_key="k", max_retries=0))
    given = [{"role": each["role"], "content": each["text"]} for each in messages]
    client.create(response_model=Answer, messages=given, model=model, max_tokens=99, max_retries=0)
    return {}


def is_text(each):
    return each["role"] != "tool" and not each.get("calls") and not each.get("thinking")
