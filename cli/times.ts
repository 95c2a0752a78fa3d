/** To the second, UTC: `2026-01-31 08:30:00`. */
export function moment(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

const UNITS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: 60_000 },
] as const;

/** A length of time for the eye: `350 ms`, `12.3 s`, `4 h 10 min`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  // What would be rounded to 60.0 s is a minute.
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const parts: string[] = [];
  let rest = Math.round(ms / 1000) * 1000;
  for (const { unit, ms: size } of UNITS) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  if (parts.length < 2 && rest > 0) parts.push(`${rest / 1000} s`);
  return parts.slice(0, 2).join(' ');
}
