"""Drives the command given as the first argument with the official Python
client, and prints one line a fact for TestPythonClient to compare."""

import asyncio
import sys

from claude_agent_sdk import (
    AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny,
    ResultMessage, TextBlock, query,
)


def options(**more):
    return ClaudeAgentOptions(cli_path=sys.argv[1], **more)


async def turn(messages):
    """The kinds of a turn's messages, its text and its result."""
    kinds, text, result = [], "", None
    async for m in messages:
        kind = type(m).__name__.removesuffix("Message")
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
        if isinstance(m, AssistantMessage):
            text = "".join(b.text for b in m.content if isinstance(b, TextBlock))
        if isinstance(m, ResultMessage):
            result = m
    return " ".join(kinds), text, result


async def one_shot():
    kinds, text, r = await turn(query(prompt="hi", options=options()))
    print("one shot:", kinds, "/", text, "/", r.subtype, r.is_error)
    kinds, text, again = await turn(query(prompt="more", options=options(resume=r.session_id)))
    print("resumed:", text, "/", again.session_id == r.session_id)


async def several():
    async def prompts():
        for p in ("one", "two"):
            yield {"type": "user", "message": {"role": "user", "content": p}}

    results = [m async for m in query(prompt=prompts(), options=options(system_prompt="be brief")) if isinstance(m, ResultMessage)]
    print("several:", [r.result for r in results])


async def conversation():
    async with ClaudeSDKClient(options=options(include_partial_messages=True)) as c:
        info = await c.get_server_info()
        print("server info:", sorted(info)[:3], len(info["models"]) > 3)
        await c.query("one")
        print("client:", (await turn(c.receive_response()))[0])
        await c.set_permission_mode("plan")
        await c.set_model("claude-opus-4-1")
        await c.query("two")
        modes, model = [], ""
        async for m in c.receive_response():
            data = getattr(m, "data", {})
            if "permissionMode" in data:
                modes.append(m.subtype + "=" + data["permissionMode"])
            model = data.get("model", model)
        print("settings:", modes, model)


async def interrupted():
    async with ClaudeSDKClient(options=options(allowed_tools=["Bash"])) as c:
        await c.query("slow tool")
        kinds = []
        async for m in c.receive_response():
            kinds.append(type(m).__name__.removesuffix("Message"))
            if isinstance(m, AssistantMessage):
                await c.interrupt()
        print("interrupted:", kinds[-1], m.subtype, m.is_error)
        await c.query("and now")
        print("after it:", (await turn(c.receive_response()))[2].subtype)


async def asked():
    async def allow(name, given, context):
        return PermissionResultAllow(updated_input={"command": "echo changed by the host"})

    async def deny(name, given, context):
        return PermissionResultDeny(message="not today")

    async def broken(name, given, context):
        raise RuntimeError("the host's callback failed")

    for answer in (allow, deny, broken):
        async with ClaudeSDKClient(options=options(can_use_tool=answer)) as c:
            await c.query("tool")
            print("asked:", (await turn(c.receive_response()))[1])


async def failures():
    for name, run in (
        ("api", query(prompt="bad", options=options())),
        ("session", query(prompt="x", options=options(resume="6f2c0000-0000-4000-8000-00000000000f"))),
    ):
        try:
            async for _ in run:
                pass
        except Exception as e:  # noqa: BLE001
            print("failure:", name, "/", e)


async def main():
    for scenario in (one_shot, several, conversation, interrupted, asked, failures):
        await asyncio.wait_for(scenario(), 60)


asyncio.run(main())
