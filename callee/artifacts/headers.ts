import type { IncomingHttpHeaders } from 'node:http';
import { isMediaType } from './media-type.ts';

/** For every answer: what a URL leads to is for its holder, and for as long as the URL lasts. */
export const COMMON_HEADERS = { 'Cache-Control': 'private, no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** What a client needs to know to store the content. Never to show it: it comes from a task, under our own origin. */
export function contentHeaders(name: string, type: string): Record<string, string> {
  return {
    'Content-Type': isMediaType(type) ? type : 'application/octet-stream',
    'Content-Disposition': contentDisposition(name),
    'Accept-Ranges': 'bytes',
  };
}

/** The checksum as an entity tag, where it can be one. */
export function etagOf(checksum: string | undefined): string | undefined {
  return checksum !== undefined && /^[\w:.+/=-]{1,200}$/.test(checksum) ? `"${checksum}"` : undefined;
}

/** Whether the client says that it has this content already. */
export function isHeldByClient(headers: IncomingHttpHeaders, etag: string | undefined): boolean {
  const held = headers['if-none-match'];
  if (held === undefined) return false;
  return held.trim() === '*' || Array.from(held.matchAll(/"[^"]*"/g), ([tag]) => tag).some((tag) => tag === etag);
}

/** Under a name that is neither hidden nor looks like another one; the plain form for clients that know no other. */
function contentDisposition(name: string): string {
  const safe = name.replace(/^\.+/, '_').replace(/\p{Cf}/gu, '_');
  const plain = safe.replace(/[^ -~]|["\\%]/gu, '_');
  const encoded = encodeURIComponent(safe).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
