import type { Capability } from '../../schemas/types.ts';
import type { KeyRing } from '../../session/keys/key-ring.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/store.ts';
import { type Executor, TaskFailure } from '../run.ts';
import { type ArtifactGrant, signGrant } from './grant.ts';
import { listedArtifact } from './listed.ts';
import { parseArtifactUri } from './uri.ts';

export interface ArtifactCapabilityParts {
  readonly calleeId: string;
  readonly store: Store;
  readonly keys: Pick<KeyRing, 'sign'>;
  readonly clock: Clock;
  /** Where {@link createArtifactHandler} is mounted, without a slash at its end. */
  readonly baseUrl: string;
  /** How long a URL can be used. */
  readonly lifetimeMs: number;
}

const DECLARATION: Capability = {
  name: 'hcp.artifact',
  version: '1.0.0',
  description: 'Turns the hcp:// URI of an artifact of your own session into a URL it can be fetched from for a while',
  input_schema: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] },
  output_schema: {
    type: 'object',
    properties: {
      url: { type: 'string' },
      expires_at: { type: 'string' },
      size_bytes: { type: 'integer', minimum: 0 },
      checksum: { type: 'string' },
    },
    required: ['url', 'expires_at'],
  },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

/** The reserved capability by which callers fetch the artifacts of their sessions, over HTTP and never by a message (P5). */
export function artifactCapability(parts: ArtifactCapabilityParts): {
  readonly declaration: Capability;
  readonly executor: Executor;
} {
  const { calleeId, store, keys, clock, baseUrl, lifetimeMs } = parts;
  return {
    declaration: DECLARATION,
    async executor({ inputs }, { callerId }) {
      const address = parseArtifactUri(inputs.uri);
      const isOurs = address?.calleeId === calleeId;
      const artifact = isOurs ? await listedArtifact(store, callerId, address) : undefined;
      if (!isOurs || artifact === undefined) throw unavailable();
      const { type, size_bytes: sizeBytes, checksum } = artifact;
      const now = clock.now();
      const expiresAt = Math.floor((now + lifetimeMs) / 1000);
      const grant: ArtifactGrant = { address, callerId, expiresAt, type, sizeBytes, checksum };
      return {
        outputs: {
          url: `${baseUrl}/${await signGrant(keys, grant, now)}`,
          expires_at: new Date(expiresAt * 1000).toISOString(),
          ...(sizeBytes !== undefined && { size_bytes: sizeBytes }),
          ...(checksum !== undefined && { checksum }),
        },
      };
    },
  };
}

/** Always the same: whoever asks must not learn what there is of others. */
function unavailable(): TaskFailure {
  return new TaskFailure('input_error', 'No artifact of your sessions has this URI');
}
