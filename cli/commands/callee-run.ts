import { loadCalleeModule } from '../callee-module.ts';
import type { Command } from '../command.ts';
import { SERVE_OPTIONS, serve } from '../serve.ts';

/** A callee of one's own, from a module. */
export const calleeRunCommand: Command = {
  name: 'callee run',
  summary: 'run the callee that a module describes, until Ctrl-C',
  arguments: '<module>',
  arity: [1, 1],
  options: SERVE_OPTIONS,
  examples: ['hcp callee run ./lab.ts --callee-id lab --instance-id lab-1'],
  async run(call) {
    const [path = ''] = call.positionals;
    const module = await loadCalleeModule(path);
    const names = module.capabilities.map(({ declaration: { name, version } }) => `${name} ${version}`);
    return serve(call, module, [`Callee ${call.workplace.calleeId} offers ${names.join(', ')}. Ctrl-C ends it.`]);
  },
};
