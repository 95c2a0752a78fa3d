import type { IncomingHttpHeaders } from 'node:http';

/** Bytes of a file, both ends included; empty when the end is before the start. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SINGLE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/i;

/**
 * The part of a file a request asks for (RFC 9110, 14.2). `whole` also where it asks for what we do not do, several
 * ranges among it, or where the part would not fit the one it has: a client must expect that.
 */
export function requestedRange(
  headers: IncomingHttpHeaders,
  { size, etag }: { readonly size: number; readonly etag: string | undefined },
): ByteRange | 'whole' | 'unsatisfiable' {
  const [, first, last, suffix] = SINGLE.exec(headers.range ?? '') ?? [];
  if (headers['if-range'] !== undefined && headers['if-range'] !== etag) return 'whole';
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size);
    return length > 0 ? { start: size - length, end: size - 1 } : 'unsatisfiable';
  }
  if (first === undefined || (last && Number(last) < Number(first))) return 'whole';
  const start = Number(first);
  return start < size ? { start, end: Math.min(last ? Number(last) : size, size - 1) } : 'unsatisfiable';
}
