#!/usr/bin/env node
import { buffer } from 'node:stream/consumers';
import { hcp } from './hcp.ts';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
// Whoever reads us may stop reading (`hcp tail … | head`): that is no error of ours.
process.stdout.on('error', () => process.exit());
process.exitCode = await hcp(process.argv.slice(2), {
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  read: () => buffer(process.stdin),
  isTTY: process.stdout.isTTY === true,
  env: process.env,
  signal: stop.signal,
});
