import { exportEvidence } from '../../session/audit/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { sessionOf, textOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { writeOutput } from '../files.ts';
import { KEY_OPTION, keysFor } from '../keys.ts';
import { jsonLine } from '../output.ts';
import { findSession, storeToRead } from '../stored.ts';

export const exportCommand: Command = {
  name: 'export',
  summary: 'all the callee has about a session, as a sealed file that proves itself',
  arguments: '<session>',
  arity: [1, 1],
  options: {
    out: { type: 'string', value: 'FILE', about: 'where to (stdout)' },
    key: { ...KEY_OPTION, about: 'a private JWK to seal with, instead of the key in the store' },
  },
  examples: ['hcp export 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 --out evidence.jsonl'],
  async run(call) {
    const { values, json, io, workplace } = call;
    const { calleeId } = workplace;
    const path = textOf(values, 'out');
    const store = await storeToRead(workplace);
    const { sessionId } = await findSession(store, calleeId, sessionOf(call));
    const keys = await keysFor(call);
    const bundle = await exportEvidence({ store, calleeId, sessionId, keys, clock: systemClock });
    if (path === undefined) {
      // Printing ends the last line again, so what is printed is the bundle to the byte.
      io.out(bundle.slice(0, -1));
      return EXIT.ok;
    }
    await writeOutput(path, bundle);
    const bytes = Buffer.byteLength(bundle);
    io.out(json ? jsonLine({ session_id: sessionId, file: path, bytes }) : `${path}: ${bytes} bytes, sealed`);
    return EXIT.ok;
  },
};
