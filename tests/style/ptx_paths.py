"""Facts that hold on every path through a kernel, from its PTX: blocks of instructions, the branches between them, and
facts that are propagated along branches until nothing changes. A path that the branches allow counts as one, whether or
not it is ever taken, so a fact holds whatever the conditions of branches are."""
import re

LABEL = re.compile(r"^\s*(\$\w+):")
BRANCH = re.compile(r"^\s*(@!?%\w+\s+)?bra(?:\.uni)?\s+(\$\w+)")
LEAVES = re.compile(r"^\s*(@!?%\w+\s+)?(?:ret|exit)\b")

# Rules of facts: the instruction that begins a fact, the one that ends it, the one at which it must not hold, and the
# finding.
RULES = [
    (re.compile(r"\bstmatrix\."),
     re.compile(r"\bfence\.proxy\.async(?:\.shared::cta)?\s*;"),
     re.compile(r"\bmbarrier\.arrive\b"),
     "hands on what ordinary stores wrote and TMA reads: fence.proxy.async is missing on some path"),
    (re.compile(r"\bcp\.async\.bulk\.(?:tensor\.\dd\.)?global\.shared::cta"),
     re.compile(r"\bcp\.async\.bulk\.commit_group\b"),
     re.compile(r"\bcp\.async\.bulk\.wait_group"),
     "waits for copies that belong to no group yet: cp.async.bulk.commit_group is missing on some path"),
    (re.compile(r"\bmbarrier\.init\b"),
     re.compile(r"\bfence\.mbarrier_init\.release\.cluster\b"),
     re.compile(r"\bcp\.async\.bulk\.(?:tensor\.\dd\.)?shared::cluster\.global|\bst\.async\b"),
     "uses barriers that TMA may not see yet: fence.mbarrier_init is missing on some path"),
]


def blocks(body):
    """[(instructions, numbers of the blocks that may follow)] of a kernel, from its first one."""
    parts, names, lists, current = [], {}, {}, []
    for line in body.splitlines():
        if ".branchtargets" in line:
            name, _, targets = line.partition(":")
            lists[name.strip()] = re.findall(r"\$\w+", targets)
            continue
        if match := LABEL.match(line):
            parts.append(current)
            current = []
            names[match.group(1)] = len(parts)
            line = line[match.end():]
        current.append(line)
        if BRANCH.match(line) or LEAVES.match(line) or "brx.idx" in line:
            parts.append(current)
            current = []
    parts.append(current)
    found = []
    for number, lines in enumerate(parts):
        last = lines[-1] if lines else ""
        following = [number + 1] if number + 1 < len(parts) else []
        if match := BRANCH.match(last):
            following = [names[match.group(2)]] + (following if match.group(1) else [])
        elif match := LEAVES.match(last):
            following = following if match.group(1) else []
        elif "brx.idx" in last:
            following = [names[target] for target in lists[re.search(r"(\$?\w+)\s*;", last).group(1)]]
        found.append((lines, following))
    return found


def through(lines, rule, holds):
    """Whether the fact holds behind a block, and the first instruction at which it may not."""
    begins, ends, forbidden, _ = rule
    wrong = None
    for line in lines:
        if holds and forbidden.search(line):
            wrong = wrong or line.strip()
        if ends.search(line) and not line.strip().startswith("@"):
            holds = False
        if begins.search(line):
            holds = True
    return holds, wrong


def broken(body):
    """The findings in a kernel, each with its instruction."""
    graph = blocks(body)
    findings = []
    for rule in RULES:
        entered = [False] * len(graph)
        todo = list(range(len(graph)))
        while todo:
            number = todo.pop()
            if not through(graph[number][0], rule, entered[number])[0]:
                continue
            for after in graph[number][1]:
                if not entered[after]:
                    entered[after] = True
                    todo.append(after)
        wrong = {at for (lines, _), holds in zip(graph, entered) if (at := through(lines, rule, holds)[1])}
        findings += [f"{rule[3]} (at '{at}')" for at in sorted(wrong)[:1]]
    return findings


STAGE = """
setp.ne.s32 %p1, %r1, 0;
@%p1 bra $L__1;
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r3, %r4, %r5};
fence.proxy.async.shared::cta;
$L__1:
mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r6];
ret;
"""
SEND = """
mbarrier.init.shared.b64 [%r1], %r2;
fence.mbarrier_init.release.cluster;
$L__1:
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r3, [%r4];
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [%r3];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
@%p1 bra $L__1;
ret;
"""
PROXY, INIT, COMMIT, WAIT = ("fence.proxy.async.shared::cta;\n", "fence.mbarrier_init.release.cluster;\n",
                             "cp.async.bulk.commit_group;\n", "cp.async.bulk.wait_group 0;\n")
BAD = [STAGE.replace(PROXY, ""), STAGE.replace(PROXY, "fence.proxy.async.global;\n"),
       STAGE.replace(PROXY + "$L__1:\n", "$L__1:\n").replace("ret;", PROXY + "ret;"),
       # On one of two paths only.
       STAGE.replace(PROXY, "@%p2 bra $L__1;\n" + PROXY),
       SEND.replace(INIT, ""), SEND.replace(COMMIT, ""), SEND.replace(COMMIT + WAIT, WAIT + COMMIT),
       SEND.replace(COMMIT + WAIT, WAIT.replace("group 0", "group.read 0"))]
GOOD = [STAGE, SEND, "ret;\n"]


def judged_wrongly():
    """Of these, those that are: for the self-test of the gate."""
    return [body for body in BAD if not broken(body)] + [body for body in GOOD if broken(body)]
