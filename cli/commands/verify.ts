import { auditHeads, verifyAudit, verifyEvidence } from '../../session/audit/index.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readInput } from '../files.ts';
import { KEY_OPTION, keysFor } from '../keys.ts';
import { jsonLine, paint, tame } from '../output.ts';
import { storeToRead } from '../stored.ts';
import { UsageError } from '../usage-error.ts';

export const verifyCommand: Command = {
  name: 'verify',
  summary: 'whether a sealed file is genuine, or with --audit, whether the audit log is intact',
  arguments: '[<bundle>|-]',
  arity: [0, 1],
  options: {
    key: KEY_OPTION,
    audit: { type: 'boolean', about: 'check the audit log in the store instead of a file' },
  },
  examples: ['hcp verify evidence.jsonl --key public.jwks.json', 'hcp verify --audit'],
  run(call) {
    const isAudit = call.values.audit === true;
    if (isAudit === call.positionals.length > 0) throw new UsageError('verify takes either a <bundle> or --audit');
    return isAudit ? checkAudit(call) : checkBundle(call);
  },
};

async function checkBundle(call: Call): Promise<ExitCode> {
  const { positionals, io, json } = call;
  const path = positionals[0] ?? '-';
  const file = await readInput(path, io);
  const { findings, sessionId, summary } = await verifyEvidence(file, { keys: await keysFor(call) });
  const { calleeId, exportedAt, state, logEntries, auditRecords } = summary;
  const [first, ...others] = findings;
  if (json) {
    const told = { callee_id: calleeId, session_id: sessionId, state, exported_at: exportedAt };
    const counts = { log_entries: logEntries, audit_records: auditRecords };
    io.out(jsonLine({ file: path, genuine: first === undefined, findings, ...told, ...counts }));
  } else if (first === undefined) {
    const what = `session ${sessionId} of ${calleeId}, ${state}, exported ${exportedAt}`;
    io.out(paint(io, 'green', `${path} is genuine: ${tame(what)}`));
  } else {
    const more = others.length === 0 ? '' : ` (and ${others.length} more: --json)`;
    io.out(paint(io, 'red', `${path} is not to be believed: ${tame(first)}${more}`));
  }
  return first === undefined ? EXIT.ok : EXIT.failed;
}

async function checkAudit({ io, json, workplace: place }: Call): Promise<ExitCode> {
  const store = await storeToRead(place);
  const findings = await verifyAudit(store, place.calleeId);
  const heads = await auditHeads(store, place.calleeId);
  const records = heads.reduce((sum, { length }) => sum + length, 0);
  const isIntact = findings.length === 0;
  if (json) io.out(jsonLine({ callee_id: place.calleeId, intact: isIntact, findings, heads }));
  else if (isIntact)
    io.out(paint(io, 'green', `The audit log is intact (records: ${records}, chains: ${heads.length})`));
  else for (const { problem } of findings) io.out(paint(io, 'red', tame(problem)));
  return isIntact ? EXIT.ok : EXIT.failed;
}
