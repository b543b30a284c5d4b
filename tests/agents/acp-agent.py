#!/usr/bin/env python3
"""An agent that speaks the Agent Client Protocol. What it is to do stands in its prompt, a word and its arguments a line:

write FILE        asks for leave, then writes     run CMD     asks for leave, then runs it by sh
ask KIND [PATH]   asks for leave for that         task        asks the server that it was given for the task
say TEXT          says something                  line TEXT   writes a line as it is
hold NAME         writes to NAME-up, reads NAME-go            long N   writes a line of N MiB
child             leaves a process behind         die CODE, kill SIGNAL, stop REASON, error CODE TEXT, mute

How it is otherwise is in the environment: NO_LOAD, BAD_LOAD, BAD_INIT, VERSION, DEAF (to the end of its input), MODES.
"""
import json, os, signal, subprocess, sys, threading

ROOT, sessions = os.environ["ROOT"], {}
count = [100]


def note(name, text):
    with open(os.path.join(ROOT, "notes", name), "a") as f:
        f.write(text + "\n")


def out(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(**message):
    out(json.dumps({"jsonrpc": "2.0", **message}))


def update(session, **what):
    send(method="session/update", params={"sessionId": session, "update": what})


def read():
    line = sys.stdin.readline()
    if not line:
        if os.environ.get("DEAF"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()
        sys.exit(0)
    message = json.loads(line)
    note("got", line.rstrip())
    return message


def ask(method, params):
    count[0] += 1
    send(id=count[0], method=method, params=params)
    while True:
        message = read()
        if message.get("id") == count[0] and "method" not in message:
            return message
        if message.get("method") == "session/cancel":
            note("cancelled", "while asking")


def leave(session, **call):
    call = {"toolCallId": "call-%d" % count[0], "status": "pending", **call}
    options = [{"optionId": kind + "-id", "name": kind, "kind": kind} for kind in
               ("allow_always", "allow_once", "reject_once", "reject_always")]
    reply = ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
    chosen = reply["result"]["outcome"].get("optionId", reply["result"]["outcome"]["outcome"])
    note("leave", "%s %s" % (call["kind"], chosen))
    good = chosen.startswith("allow")
    status = "completed" if good else "failed"
    update(session, sessionUpdate="tool_call_update", **{**call, "status": status})
    return good


def server_says(session):
    server = sessions[session][0]
    env = {**os.environ, **{pair["name"]: pair["value"] for pair in server["env"]}}
    asked = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
              "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_task", "arguments": {}}}]
    child = subprocess.Popen([server["command"]] + server["args"], env=env, text=True, bufsize=1,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for message in asked:
        child.stdin.write(json.dumps(message) + "\n")
        if "id" in message:
            answer = child.stdout.readline()
    child.stdin.close()
    return answer


def turn(session, request, text):
    reason = "end_turn"
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "write":
            if leave(session, kind="edit", title="Write " + rest, locations=[{"path": os.path.abspath(rest)}]):
                with open(rest, "a") as f:
                    f.write("text\n")
        elif word == "run":
            if leave(session, kind="execute", title="Run it", rawInput={"command": rest}):
                subprocess.run(["sh", "-c", rest], stdout=subprocess.DEVNULL)
        elif word == "ask":
            kind, _, path = rest.partition(" ")
            leave(session, kind=kind, title="a call", locations=[{"path": path}] if path else [])
        elif word == "task":
            note("task", server_says(session))
        elif word == "say":
            update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": rest})
        elif word == "line":
            out(rest)
        elif word == "long":
            for _ in range(int(rest)):
                sys.stdout.write("x" * (1024 * 1024))
            out("")
        elif word == "hold":
            with open(os.path.join(ROOT, rest + "-up"), "w") as f:
                f.write("%d\n" % os.getpid())
            with open(os.path.join(ROOT, rest + "-go")) as f:
                f.read()
        elif word == "child":
            child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
            note("child", str(child.pid))
        elif word == "die":
            os._exit(int(rest))
        elif word == "kill":
            os.kill(os.getpid(), int(rest))
        elif word == "stop":
            reason = rest
        elif word == "error":
            code, _, text = rest.partition(" ")
            return send(id=request, error={"code": int(code), "message": text})
        elif word == "cost":
            update(session, sessionUpdate="usage_update", used=500, size=1000,
                   cost={"amount": float(rest), "currency": "USD"})
        elif word == "mute":
            while read().get("method") != "session/cancel":
                pass
            note("cancelled", "while at work")
            reason = "cancelled"
    sessions[session][1] += 0.01
    update(session, sessionUpdate="usage_update", used=500, size=1000,
           cost={"amount": sessions[session][1], "currency": "USD"})
    usage = {"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 50, "totalTokens": 170}
    send(id=request, result={"stopReason": reason, "usage": usage})


note("started", " ".join(sys.argv[1:]) + " in " + os.getcwd())
while True:
    message = read()
    method, params, request = message.get("method"), message.get("params"), message.get("id")
    if method == "initialize":
        if os.environ.get("BAD_INIT"):
            send(id=request, error={"code": -32000, "message": os.environ["BAD_INIT"]})
            continue
        version = int(os.environ.get("VERSION", "1"))
        can = {"loadSession": not os.environ.get("NO_LOAD")}
        send(id=request, result={"protocolVersion": version, "agentCapabilities": can})
    elif method == "session/new":
        session = "s-%d" % os.getpid()
        sessions[session] = [params["mcpServers"][0], 0.0]
        result = {"sessionId": session}
        if os.environ.get("MODES"):
            current, *others = os.environ["MODES"].split()
            result["modes"] = {"currentModeId": current, "availableModes": [{"id": i} for i in [current] + others]}
        send(id=request, result=result)
    elif method == "session/load":
        session = params["sessionId"]
        if os.environ.get("BAD_LOAD"):
            send(id=request, error={"code": -32602, "message": "no such session"})
            continue
        # What it has cost before, and what was said.
        sessions[session] = [params["mcpServers"][0], 0.01]
        update(session, sessionUpdate="user_message_chunk", content={"type": "text", "text": "in the past"})
        update(session, sessionUpdate="tool_call", toolCallId="old", kind="edit", title="old", status="completed")
        update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "said long ago"})
        send(id=request, result={})
    elif method == "session/set_mode":
        note("mode", params["modeId"])
        send(id=request, result={})
    elif method == "session/prompt":
        note("prompt", json.dumps(params["prompt"][0]["text"]))
        turn(params["sessionId"], request, params["prompt"][0]["text"])
    elif request is not None and method:
        send(id=request, error={"code": -32601, "message": "no such method"})
