const WEEKS = /^P(\d{1,6})W$/;
const PARTS = /^P(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$/;
const MS = { week: 604_800_000, day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1000 } as const;

/**
 * The milliseconds of an ISO 8601 duration: `PnW`, or days to seconds, decimals only in the seconds (D-29).
 * `undefined` for anything else, zero included: years and months have no fixed length, and a limit of nothing is a mistake.
 */
export function parseDuration(text: string): number | undefined {
  const weeks = WEEKS.exec(text)?.[1];
  const parts = weeks === undefined ? PARTS.exec(text) : null;
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = parts ?? [];
  const ms =
    Number(weeks ?? 0) * MS.week +
    Number(days) * MS.day +
    Number(hours) * MS.hour +
    Number(minutes) * MS.minute +
    Math.round(Number(seconds) * MS.second);
  return ms > 0 ? ms : undefined;
}

/** The ISO 8601 form of a positive number of milliseconds: `14_400_000` is `PT4H`. */
export function formatDuration(durationMs: number): string {
  if (!Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new TypeError(`durationMs must be a positive integer, but is ${durationMs}`);
  }
  const days = Math.floor(durationMs / MS.day);
  const hours = Math.floor((durationMs % MS.day) / MS.hour);
  const minutes = Math.floor((durationMs % MS.hour) / MS.minute);
  const seconds = (durationMs % MS.minute) / MS.second;
  const time = `${hours ? `${hours}H` : ''}${minutes ? `${minutes}M` : ''}${seconds ? `${seconds}S` : ''}`;
  return `P${days ? `${days}D` : ''}${time ? `T${time}` : ''}`;
}
