import { textsOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { sampleCallee } from '../sample-callee.ts';
import { SERVE_OPTIONS, serve } from '../serve.ts';
import { typedPlace } from '../task.ts';

/** A callee to try things with, on a file or on real servers. */
export const devCommand: Command = {
  name: 'dev',
  summary: 'run a sample callee to try things with (for development: it trusts everybody on this machine)',
  options: {
    allow: {
      type: 'string',
      multiple: true,
      value: 'CALLER',
      about: 'serve only these callers (default: everybody on this machine; over a network cli)',
    },
    ...SERVE_OPTIONS,
  },
  examples: [
    'hcp dev',
    'hcp dev --instance-id dev-1',
    'hcp dev --amqp amqp://localhost --store mongodb://localhost/hcp',
  ],
  async run(call) {
    const { workplace, values } = call;
    const transport = await workplace.transport();
    const isFile = workplace.transportUrl.startsWith('sqlite:');
    const where = isFile ? workplace.transportUrl.slice('sqlite:'.length) : 'the message broker';
    return serve(call, sampleCallee(transport.link, textsOf(values, 'allow')), [
      `Callee ${workplace.calleeId} on ${where}, for development. It offers demo.count, hcp.conformance and hcp.describe.`,
      `In another terminal, ${isFile ? 'in this folder' : 'with the same --amqp and --store'}:`,
      `  hcp submit demo.count --input '{"to":5}'${typedPlace(values)}`,
      'Ctrl-C ends it.',
    ]);
  },
};
