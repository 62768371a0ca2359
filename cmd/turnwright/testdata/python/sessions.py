"""Reads and changes the session named by the second argument with the official
Python client, for TestPythonReadsSessions."""

import json
import os
import sys

from claude_agent_sdk import get_session_info, get_session_messages, list_sessions, rename_session, tag_session

what, session = sys.argv[1:]
here = os.getcwd()


def short(content):
    """The content without ids and inputs."""
    if isinstance(content, str):
        return json.dumps(content, ensure_ascii=False)
    keep = ("type", "text", "name", "content")
    return json.dumps([{k: b[k] for k in sorted(keep) if k in b} for b in content], ensure_ascii=False)


if what == "read":
    info = get_session_info(session, directory=here)
    print("listed:", [i.summary for i in list_sessions(directory=here)], info.custom_title, info.first_prompt,
          info.git_branch, info.tag, info.cwd == here, info.created_at is not None)
    messages = get_session_messages(session, directory=here)
    seen = set()
    for n, m in enumerate(messages):
        assert m.session_id == session and m.uuid not in seen, m
        seen.add(m.uuid)
        if len(messages) > 4 and n > 0:
            continue
        print(m.type, m.message["role"] == m.type, m.parent_tool_use_id, m.parent_agent_id, short(m.message["content"]))
    if len(messages) > 4:
        print("and", len(messages) - 1, "more")
elif what == "mark":
    rename_session(session, "von außen", directory=here)
    tag_session(session, "blau", directory=here)
    print("done")
elif what == "clear":
    tag_session(session, None, directory=here)
    print("done")
elif what == "info":
    info = get_session_info(session, directory=here)
    print(info.custom_title, info.tag)
