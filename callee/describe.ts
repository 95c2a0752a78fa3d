import type { Capability } from '../schemas/types.ts';
import { HCP_VERSION } from '../shared/messages/message.ts';
import { type OfferedCapability, offer } from './capabilities.ts';
import { offeredBy } from './extensions.ts';
import { mayUse, type ResolvedPolicy, rightsOf } from './gate/policy.ts';

export interface DescribeParts {
  readonly calleeId: string;
  readonly policy: ResolvedPolicy;
  readonly capabilities: () => readonly OfferedCapability[];
  /** The login a session was submitted with. */
  readonly userIdOf: (sessionId: string) => string | undefined;
  /** What the SDK offers with each of them. */
  readonly extensions: readonly string[];
}

const DECLARATION: Capability = {
  name: 'hcp.describe',
  version: '1.0.0',
  description: 'Tells what this callee can do',
  input_schema: { type: 'object' },
  output_schema: { type: 'object', required: ['callee_id', 'hcp_versions', 'capabilities', 'extensions'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

/** The reserved capability that lists the others, as far as its caller may use them (P4). */
export function describeCapability({
  calleeId,
  policy,
  capabilities,
  userIdOf,
  extensions,
}: DescribeParts): OfferedCapability {
  return offer(DECLARATION, async (task, { callerId, sessionId }) => {
    const rights = await rightsOf(policy, { callerId, userId: userIdOf(sessionId), task });
    const declarations = capabilities()
      .map(({ declaration }) => declaration)
      .filter(({ name }) => rights !== undefined && mayUse(rights, name))
      .map((declaration) => ({ ...declaration, extensions: [...offeredBy(declaration, extensions)] }));
    return {
      outputs: {
        callee_id: calleeId,
        hcp_versions: [HCP_VERSION],
        capabilities: declarations,
        extensions: [...extensions],
      },
    };
  });
}
