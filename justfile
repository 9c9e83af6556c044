# Recipes for those who work on Lithify. `scripts/setup dev` installs `just` into .venv/bin.

python := justfile_directory() / ".venv/bin/python"
uv := justfile_directory() / ".venv/bin/uv"
compile := uv + " pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command 'just lock'"

# What there is
default:
    @just --justfile {{justfile()}} --list

# Format, lint, types, imports and the tests that take seconds
check:
    @{{python}} scripts/check.py --quick

# Everything; `just check-all --pulsar --shells --pythons --browser --kcat` with what needs a real Pulsar, zsh and fish, three Pythons, Chromium, kcat
check-all *ARGS:
    @{{python}} scripts/check.py {{ARGS}}

# Some sections only, such as `just only store spark`
only +SECTIONS:
    @{{python}} scripts/check.py {{SECTIONS}}

# The tests that a change of these files can break, nearest first, by the import graph
tests-for +FILES:
    @{{python}} scripts/tests_for.py {{FILES}}

# How many small changes of the rules tests notice: 200, or `just mutants --count N [--seed N] [PLACE]`
mutants *ARGS:
    {{python}} scripts/mutants.py {{ARGS}}

# Kill a thousand processes (or N) at random moments, over all verbs that write
kills N="1000":
    LITHIFY_KILLS={{N}} {{python}} -m pytest tests/kills --durations=0

# Any verbs in any order against the contract, on new seeds, for so many minutes on each store
random MINUTES="10":
    LITHIFY_RANDOM_SECONDS=$(({{MINUTES}} * 60)) LITHIFY_RANDOM_SEED=$(date +%s) {{python}} -m pytest tests/random -q -n 2

# Change bytes of every kind of stored file, on new seeds, for so many minutes
mutate MINUTES="10":
    LITHIFY_MUTATE_SECONDS=$(({{MINUTES}} * 60)) LITHIFY_MUTATE_SEED=$(date +%s) {{python}} -m pytest tests/mutated -q

# Feed topics for so many minutes while they are compacted, read, ingested and replicated, and all of it is killed
soak MINUTES="10" TOPICS="200":
    PYTHONPATH=tests {{python}} -m soak.run --minutes {{MINUTES}} --topics {{TOPICS}} --seed $(date +%s)

# The same with three gateways in place of the cleaners: fed and read over HTTP as well, with a page open in a browser
soak-gateways MINUTES="10" TOPICS="200":
    PYTHONPATH=tests {{python}} -m soak.run --gateways --minutes {{MINUTES}} --topics {{TOPICS}} --seed $(date +%s)

# Type the same commands into COMMIT and into this tree, and compare all that comes of them; `--spark` for rounds on Spark
side-by-side COMMIT *ARGS:
    PYTHONPATH=tests {{python}} -m side_by_side.run {{COMMIT}} {{ARGS}}

# A Kafka topic written, copied, killed and compacted at once, and a client that starts from the lake
chain RECORDS="1000000":
    PYTHONPATH=tests {{python}} -m soak.kafka_chain --records {{RECORDS}} --seed $(date +%s)

# Pulsar's own tests of compaction, with a round of Lithify in place of every compaction; `just peer-suite --pulsars` with Pulsar's
peer-suite *ARGS:
    PYTHONPATH=tests {{python}} -m peer_suite.run {{ARGS}}

# Rounds against other ways on the same files, into docs/figures.json and all pages that show them: 15 minutes; `just bench full`, `just bench smoke`
bench *ARGS:
    PYTHONPATH=src:tests {{python}} bench/run.py {{ARGS}}

# The tests of rounds, proofs, ingests and the data source once more, with sessions on a standalone cluster of two workers
cluster-suite *ARGS:
    {{python}} -m pytest -q --on-cluster tests/spark {{ARGS}}
    {{python}} -m pytest -q --on-cluster tests/kafka {{ARGS}}

# Format the code
format:
    {{python}} -m ruff check --fix
    {{python}} -m ruff format

# Write the pages that are made from code
docs:
    {{python}} scripts/settings_reference.py
    {{python}} scripts/guarantees_index.py
    {{python}} scripts/metrics_reference.py
    {{python}} scripts/compaction_picture.py
    {{python}} scripts/concept_pictures.py
    {{python}} bench/figure_pages.py

# The documents as a site that needs no network, in `site`; `just site --out FOLDER`
site *ARGS:
    @PYTHONPATH=src {{python}} scripts/build_site.py {{ARGS}}

# Write the code that reads and writes Pulsar's protobuf messages
wire:
    cd src && {{python}} -m grpc_tools.protoc -I. --python_out=. --pyi_out=. lithify/pulsar/format/wire.proto lithify/pulsar/client/commands.proto

# Write the lock files anew from pyproject.toml; `just lock --upgrade` takes newer versions
lock *ARGS:
    {{compile}} {{ARGS}} --group build -o requirements-build.lock
    {{compile}} {{ARGS}} pyproject.toml -o requirements.lock
    {{compile}} {{ARGS}} pyproject.toml --extra gateway --extra kafka --extra postgres -c requirements.lock -o requirements-deploy.lock
    {{compile}} {{ARGS}} pyproject.toml --group dev -c requirements.lock -c requirements-build.lock -o requirements-dev.lock
    {{compile}} {{ARGS}} --group engines -o requirements-engines.lock
    {{compile}} {{ARGS}} --group site -o requirements-site.lock
