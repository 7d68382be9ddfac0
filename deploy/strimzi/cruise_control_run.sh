#!/usr/local/bin/evenkeel strimzi
# The program itself does what this is for, so that its image needs no shell: docs/engine.md says what.
