"""The commands: what each is called, what `--help` says of it, and what carries it out."""

from __future__ import annotations

from hlotool.interface.cli.command import Command

COMMANDS = (
    Command(
        "demo [options]",
        "try it: find a planted fault in a dump that comes with hlotool",
        "hlotool.interface.api.demo:demo",
        execute="hlotool.interface.cli.demo:execute",
        description="""\
Write a small training step and the dump that XLA made of it into a folder, with one pass wrong on purpose,
and run the commands that find it: run, bisect, check, explain. It needs neither jaxlib nor a network, and
less than 20 seconds. Each command is shown as one would type it.
""",
        examples="""\
examples:
  hlotool demo                                    in a temporary folder
  hlotool demo --out try-hlotool                  in a folder of yours, to try more of it
""",
    ),
    Command(
        "run [options] PATH ...",
        "replay every module of a dump and compare its stages",
        "hlotool.interface.api.replay:replay",
        reports=True,
        execute="hlotool.interface.cli.run:execute",
        description="""\
Replay every module of a dump: run the program as the frontend gave it (before optimizations) and
the program that was compiled (after optimizations) on the same inputs, and compare their results.
""",
        examples="""\
examples:
  hlotool run DIR                                 every module of a dump directory
  hlotool run DIR --only train_step --verbose     one module, every detail
  hlotool run dump.tar.gz --jobs 8 --json         an archive, eight processes, JSON for scripts
  hlotool run FILE.hlo --inputs in.npz --outputs out.npz
                                                  does the program give what the hardware gave?
  hlotool run FILE.hlo --backend xla              does real XLA give what the numpy reference gives?
  hlotool run FILE.hlo --reference xla --backend xla:disable=algsimp
                                                  does XLA give the same without one of its passes?
  hlotool run DIR --compare numpy,cuda,xla:gpu    the first is the reference of all others
""",
    ),
    Command(
        "exec [options] -- COMMAND ...",
        "run a program, and replay what it compiles with its real arguments and results",
        "hlotool.interface.cli.exec:ExecArguments",
        reports=True,
        execute="hlotool.interface.cli.exec:execute",
        description="""\
Run a program with the flags that make its XLA write a dump, and replay every module while the program runs:
before and after optimizations, and what the device really returned. The program keeps the terminal, gets the
signals, and its exit status is passed on where nothing is wrong.
""",
        examples="""\
examples:
  hlotool exec -- python train.py --steps 10      one execution of every module is judged
  hlotool exec --bisect -- python train.py        and what is wrong is searched, pass by pass
  hlotool exec --for v5e -- python train.py       what it compiles, for a TPU, too
  hlotool exec --only train_step --snapshots 3 -- pytest tests/test_model.py
  hlotool exec --keep DIR --json -- ./run.sh      keep the dump; the program's stdout goes to stderr
""",
    ),
    Command(
        "bisect [options] PATH ...",
        "find the module, the pass and the instructions that made a result wrong",
        "hlotool.interface.api.bisect:bisect",
        reports=True,
        description="""\
Find what made a program wrong: the module, the compiler pass, the instructions. Every stage of a dump is
run on the same inputs; both ends are checked before anything is searched, and what is found is run a
second time before it is reported. After the first fault a second one is looked for.
""",
        examples="""\
examples:
  hlotool bisect DIR                              a dump with --xla_dump_hlo_pass_re=.*
  hlotool bisect DIR --only train_step            one module
  hlotool bisect FILE.hlo --backend xla           no dump: XLA is here and makes one
  hlotool bisect DIR --inputs in.npz --outputs out.npz
                                                  does the hardware do what the last stage says?
""",
    ),
    Command(
        "reduce [options] FILE",
        "make a failing program small while it fails in the same way",
        "hlotool.interface.api.reduce:reduce",
        execute="hlotool.interface.cli.calling:reduce",
        description="""\
Make a failing program small: fewer instructions, inlined calls, shorter loops, smaller shapes, simpler types
and values, fewer devices. The way in which it fails is kept: a wrong value never becomes a crash.

A command given as --check is called with the file of a candidate; the arguments lie beside it as .npz. Its
exit status means what it means to `git bisect run`: 0 good, 125 cannot be judged, others bad.
""",
        examples="""\
examples:
  hlotool reduce FILE.hlo --backend xla           where XLA and the reference differ
  hlotool reduce FILE.hlo --backend xla --exact   what XLA's passes change mathematically
  hlotool reduce FILE.hlo --check ./fails.sh --output small.hlo
""",
    ),
    Command(
        "extract [options] FILE INSTRUCTION ...",
        "cut instructions out of a program, with the values that they got",
        "hlotool.interface.api.reduce:extract",
        execute="hlotool.interface.cli.calling:extract",
        description="""\
Cut instructions, a fusion or a whole computation out of a program into a program of their own. What they
read becomes parameters; the values that occurred are written beside it as .npz. Of a program for several
devices, what exchanges values gets those of each device, other parts get those of the first.
""",
        examples="""\
examples:
  hlotool extract FILE.hlo fusion.3               one fusion
  hlotool extract FILE.hlo add.7 --height 2       two steps back along its operands, too
  hlotool extract FILE.hlo body.12 --call 4       the body of a loop at iteration 4
""",
    ),
    Command(
        "repro verify [options] DIR ...",
        "run a repro bundle again: does it still fail, and in the same way?",
        "hlotool.interface.api.kept:verify",
        description="""\
Run repro bundles again. The exit code is 1 when a bundle still fails in the same way, 0 when none fails any
more, 5 when one fails in another way. The same way: the same kind of failure of the same outputs.

A bundle that names a command, an interpreter or flags of XLA is not run unless you trust it.
""",
    ),
    Command(
        "check [options] PATH ...",
        "find what is wrong in programs without running them",
        "hlotool.interface.api.check:check",
        reports=True,
        execute="hlotool.interface.cli.check:execute",
        description="""\
Check programs without running them: the rules of HLO, the legality of fusions and of host offloading, and
what is allowed but probably not meant: recompilation, unrolled loops, stateful random numbers, and more.
""",
        examples="""\
examples:
  hlotool check DIR                               every module: the first and the last stage
  hlotool check DIR --stages '*'                  every stage that was dumped
  hlotool check FILE.hlo --only invalid-hlo
  hlotool check DIR --sarif findings.sarif        for code review tools
  hlotool check FILE.hlo --explain-fusion multiply.3 reduce.1
  hlotool check FILE.hlo --fix output-layout -o MENDED.hlo
""",
    ),
    Command(
        "diff [options] A B",
        "what differs between two programs, dumps or sets of results",
        "hlotool.interface.api.diff:diff",
        reports=True,
        description="""\
Compare two programs instruction by instruction, two sets of arrays element by element, or two executions of
a model layer by layer.

Instructions are matched by what they compute, by what is computed from them, by the frontend's names and
lines, and by their own names, through calls and fusions: what was renamed or moved is recognised.
""",
        examples="""\
examples:
  hlotool diff BEFORE.hlo AFTER.hlo               what a pass has changed
  hlotool diff RUN HOOKS --by scope               the first layer that PyTorch computes differently
  hlotool diff DIR1 DIR2                          the modules of two dumps, first and last stage
  hlotool diff DIR1 DIR2 --stages '*after_fusion*'
  hlotool diff expected.npz actual.npz            two sets of results
  hlotool diff out/one out/other --rtol 1e-5      folders of .npy, such as --save-outputs writes
""",
    ),
    Command(
        "prove [options] A [B]",
        "are two programs mathematically equivalent?",
        "hlotool.interface.api.prove:prove",
        reports=True,
        description="""\
Evaluate two programs at random points of a finite field, in exact arithmetic, and compare what they
return. What is equal there is mathematically equivalent, whatever order sums are in and whatever types
they are rounded to; what is not has a witness. Overflow, NaN and signs of zero are not seen.
""",
        examples="""\
examples:
  hlotool prove BEFORE.hlo AFTER.hlo              two programs
  hlotool prove DIR                               every module of a dump: before and after optimizations
  hlotool prove DIR1 DIR2 --only train_step       modules of the same name
  hlotool prove DIR --explain                     which laws and constants the answer depends on
""",
    ),
    Command(
        "baseline update [options] FILE RECORD ...",
        "write what is known from now on: with --baseline FILE only what is new fails",
        "hlotool.interface.api.kept:update_baseline",
        description="""\
Write the findings of records, as commands print them with --json, into a baseline. What it knows of modules
that the records did not look at stays known; what they looked at and no longer find is forgotten.
""",
        examples="""\
examples:
  hlotool run DIR --json > now.json
  hlotool baseline update known.json now.json     these are known
  hlotool run DIR --baseline known.json           exit 1 only for what is not
""",
    ),
    Command(
        "mutate [options] FILE",
        "would your inputs notice a fault? The share of single faults that they show",
        "hlotool.lab.commands.mutate:mutate",
        description="""\
Plant single faults of the kinds that compilers make at random places of a program, and see which of them the
inputs of a replay show. Of a dump with the program before and after optimisation, the latter gets the faults
and the former judges. What is not noticed is listed with the line of your program, unless it is proved that
nothing can show it.
""",
        examples="""\
examples:
  hlotool mutate DIR                              the inputs that `hlotool run DIR` takes
  hlotool mutate FILE.hlo --inputs in.npz         inputs of your own
  hlotool mutate DIR --thorough --cases 1000      all extra input sets, more faults
  hlotool mutate FILE.hlo --scale 1000=8,64=7     a large program, with smaller sizes
""",
    ),
    Command(
        "conformance [options]",
        "try every opcode on every element type on a backend or a PJRT plug-in",
        "hlotool.lab.commands.conformance:conformance",
        reports=True,
        description="""\
Run what each opcode must do on a backend: the cases of its spec, whose results are known, and random ones
that the reference judges. A table says for each opcode and element type whether the results are those,
others that a documented freedom allows (by name), or others that nothing explains. A process that dies costs
one case.
""",
        examples="""\
examples:
  hlotool conformance --backend xla                       XLA on the CPU
  hlotool conformance --backend pjrt:/path/plugin.so      a PJRT plug-in
  hlotool conformance --backend cuda-emu --only dot,reduce --types f32,bf16
  hlotool conformance --backend xla:gpu --out failures --html table.html
""",
    ),
    Command(
        "fuzz [options] --out DIR [PATH ...]",
        "draw programs, and make a report of each distinct fault of a backend",
        "hlotool.lab.commands.fuzz:fuzz",
        description="""\
Draw programs, run them on the reference and on a backend, and look into what is wrong, crashes, hangs, or
differs from run to run twice: it is made small, blamed on a pass or on code of the compiler, and written as a
bundle with the text of an issue. Faults that are known, and further cases of one fault, are only counted.
Run the same command again to resume the campaign in its folder.
""",
        examples="""\
examples:
  hlotool fuzz --backend xla --minutes 30 --out DIR     half an hour on XLA of the installed jaxlib
  hlotool fuzz --out DIR --integers --programs 2000     no floats: every difference counts
  hlotool fuzz --out DIR corpus/jax                     these programs, changed, as well
  hlotool fuzz --out DIR --known mine.toml              these faults are known, too
""",
    ),
    Command(
        "triage [options] --out DIR PATH ...",
        "judge programs by others, and tell what fails apart by faults",
        "hlotool.lab.commands.triage:triage",
        reports=True,
        description="""\
Judge hundreds of programs by others: archives, folders, StableHLO, HLO, dumps, bundles. With --test, XLA or
another compiler gets each program as its frontend gave it; without, the stages of dumps are compared. What
fails is made small, attributed to a pass by replaying what the passes did, and recognised as a known fault
or as a case of one that another program has shown. Run the same command again to resume in its folder.
""",
        examples="""\
examples:
  hlotool triage ir.zip --test xla --out DIR           an archive of a bug report, on this jaxlib
  hlotool triage REPORTS/ --test aot:h100 --out DIR    on the compiler of a GPU that is not here
  hlotool triage DUMPS/ --out DIR --html triage.html   dumps: no compiler is asked; one page of all
""",
    ),
    Command(
        "inspect [options] PATH ...",
        "what a dump holds: functions, opcodes, sizes, memory, arithmetic, kernels",
        "hlotool.interface.api.inspect:inspect",
        execute="hlotool.interface.cli.inspect:execute",
        description="""\
Say what a dump holds, without running anything: functions and how often each was compiled, stages,
instructions, parameters and results, memory and arithmetic as XLA counts them, loops, collectives,
transfers to the host, custom calls.
""",
        examples="""\
examples:
  hlotool inspect DIR                             the functions of a dump, the largest first
  hlotool inspect DIR --only train_step           one module, in detail
  hlotool inspect FILE.hlo --json                 everything, for scripts
  hlotool inspect DIR --memory                    what is alive at the peak, and from which line
  hlotool inspect DIR log.txt --compile-time      which pass is slow, which constant, which loop
  hlotool inspect FILE.hlo --kernels              the CUDA kernels that are generated for it
  hlotool inspect DIR --kernels --arch sm_100     the same of every module, for another GPU
  hlotool inspect FILE.hlo --emit dot | dot -Tsvg > graph.svg
""",
    ),
    Command(
        "compare [options] DUMP_A DUMP_B",
        "two versions or two machines: who changed what, and is either wrong",
        "hlotool.interface.api.compare_dumps:compare_dumps",
        description="""\
Compare what two versions of a compiler, or two machines, made of the same functions. They are paired by what
they compute. Of each pair: did the frontend hand over another program; is what either compiler made of it no
correct run; and if both are, what do they differ in?
""",
        examples="""\
examples:
  hlotool compare DUMP_OLD DUMP_NEW                   the dumps of two versions of jaxlib
  hlotool compare DUMP_V5E DUMP_H100 --only step      a TPU beside a GPU
  hlotool compare step.hlo --test xla --test xla:python=OLD/bin/python
                                                      one program on two versions of XLA
""",
    ),
    Command(
        "releases [options] PATH ...",
        "the release of jaxlib with which programs went wrong",
        "hlotool.interface.api.releases:releases",
        description="""\
Find the release of jaxlib with which XLA made programs wrong. Each release that is tried is installed into an
environment of its own, about 600 MB in the cache folder (hlotool cache info, cache clear), and compiles and
runs the programs as the frontend gave them; the reference judges. Run the same command again to resume an
interrupted search.
""",
        examples="""\
examples:
  hlotool releases FILE.hlo --between 0.4.38..0.10.2
  hlotool releases DIR --only train_step --between 0.6.0..0.7.2 --every
""",
    ),
    Command(
        "gradcheck [options] F G",
        "is one program the gradient of another?",
        "hlotool.interface.api.gradcheck:gradcheck",
        description="""\
Is G the gradient of F? Both are executed in f64: along random directions the slope of F, from differences, is
compared with what G says. What is wrong is found by parameter and component.

F returns a number, alone or before other results. G takes the same arguments, and its result ends with the
derivatives by the floats among them, or by those that --wrt names.

Both are HLO, StableHLO (jax.jit(f).lower(*args).as_text(debug_info=True)), a dump, or SCRIPT.py:FUNCTION: a
function of JAX that is called with --args or what the script calls example_args.
""",
        examples="""\
examples:
  hlotool gradcheck loss.hlo grad.hlo                 two programs
  hlotool gradcheck loss.mlir grad.mlir --wrt 0,2     by two of the parameters
  hlotool gradcheck model.py:loss model.py:grad --args 'f32[8]'
""",
    ),
    Command(
        "compile [options] PROGRAM ...",
        "have the compiler of a TPU or GPU make a dump of a program, without one",
        "hlotool.interface.api.compile:compile",
        description="""\
Compile programs for a device that need not be here, by its own compiler: does it take them, what memory
do they need, what are kernels, collectives, warnings? What it makes is run on the reference beside what it
was given.

PROGRAM is HLO, StableHLO, a dump, or SCRIPT.py:FUNCTION: a function of JAX that is called with --args or
what the script calls example_args, or one without parameters that returns jax.jit(f).lower(...).
""",
        examples="""\
examples:
  hlotool compile step.mlir --for v5e --out DIR      a dump for a TPU; hlotool run, bisect, check DIR take it
  hlotool compile DIR --for h100 --no-run            every program of a dump, for a GPU; nothing is run
  hlotool compile train.py:step --for v6e,topology=2x4 --passes --out DIR
  hlotool compile model.py:f --args 'f32[8,128],s32[]' --for 7x
""",
    ),
    Command(
        "opt [options] FILE",
        "run passes on a program; convert between text and proto",
        "hlotool.interface.api.opt:opt",
        execute="hlotool.interface.cli.opt:execute",
        description="""\
Run passes on an HLO program and print it. Without --passes it is printed as it is: in XLA's form, verified,
as text or as a proto.
""",
        examples="""\
examples:
  hlotool opt FILE --passes 'inline,fix(simplify,cse,dce),fuse{kind=loop}'
  hlotool opt FILE --passes despecialize -o plain.hlo
  hlotool opt FILE --passes fuse --pass-fuel 12           only the first 12 transformations
  hlotool opt FILE --passes simplify,fuse --dump-to DIR   a dump that hlotool run and bisect take
  hlotool opt FILE.hlo.pb --emit text                     a proto as text
  hlotool opt --list-passes                               passes and their options
""",
    ),
    Command(
        "explain [options] [TEXT | FILE | -]",
        "say what a verdict, a rule or an error message means, and what to do",
        "hlotool.interface.api.inspect:explain",
        execute="hlotool.interface.cli.explain:execute",
        description="""\
Say what a word of a report means, how it was established and what to type next: verdicts, answers of
commands, rules of check. Recognise error messages of XLA, JAX, TensorFlow and PyTorch/XLA in a text or log
file: the cause, the remedy, the page of the documentation, and with --dump the instruction that a message
names. Without TEXT, list what can be explained.
""",
        examples="""\
examples:
  hlotool explain wrong                           a verdict, or another word of a report
  hlotool explain recompilation                   a rule of check
  python train.py 2>&1 | hlotool explain -        everything known in a log
  hlotool explain train.log --dump DIR            with the instructions of a dump
  hlotool explain E1200                           one error code
  hlotool explain --list                          the whole catalogue
""",
    ),
    Command(
        "backends [options]",
        "list the backends: available or why not",
        "hlotool.interface.api.kept:list_backends",
        description="List the backends that `run` can use, each loaded in a process of its own.",
    ),
    Command(
        "cache [options] info|prune|clear",
        "what is kept for later runs, verdicts and releases of jaxlib: look, or remove some",
        "hlotool.interface.api.kept:cache",
        description="""\
`run` keeps its verdicts, so that it does not replay a program again that it knows, whatever the
file and its names are; `releases` keeps an environment of about 600 MB for each release of jaxlib that
it tried. Nothing is lost with them but time.
""",
        examples="""\
examples:
  hlotool cache info                  where they are, and how much they take
  hlotool cache prune --size 100M     remove verdicts of no use for the longest time
  hlotool cache clear                 remove all, the environments of releases, too
""",
    ),
    Command(
        "merge [options] RECORD ...",
        "make the records of all shards of a run one",
        "hlotool.interface.api.merge:merge",
        reports=True,
        description="""\
Make the records of `hlotool run --shard 1/N --json` to `--shard N/N --json` one: that of the run
of all modules. The exit code is that of the whole run.
""",
        examples="""\
examples:
  hlotool merge shard-*.json                   the report of the whole run
  hlotool merge shard-*.json --junit all.xml   the same, for a build server
""",
    ),
    Command(
        "trend [options] RECORD ...",
        "records of many days: results by day, findings and since when",
        "hlotool.interface.api.trend:trend",
        description="""\
Lay the records of many days (--record) beside each other: how many results of each kind and how many seconds
a day, and of every finding the day that it appeared and whether it is still there.
""",
        examples="""\
examples:
  hlotool run DIR --record runs/$(date +%F).json       each night
  hlotool trend runs/*.json --html trend.html
""",
    ),
)
