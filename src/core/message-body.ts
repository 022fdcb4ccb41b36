/** Maximum number of characters shown of a version that is a text. Our own versions are numbers. */
const VERSION_SHOWN_MAX = 20;

/** A body that cannot be read. `detail` is for people. */
export interface Undecodable {
  readonly outcome: 'undecodable' | 'unknown_version';
  readonly detail: string;
}

/** The fields of a body, still unchecked. */
export interface OpenedBody {
  readonly outcome: 'opened';
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Reads what our messages share: a JSON object with a version. Never throws. @param later a second known version */
export function openBody(body: string, version: number, later = version): OpenedBody | Undecodable {
  let raw: unknown;
  try {
    raw = JSON.parse(body);
  } catch {
    return undecodable('not JSON');
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undecodable('not a JSON object');
  const fields = raw as Record<string, unknown>;
  if (fields.v === version || fields.v === later) return { outcome: 'opened', fields };
  const known =
    later === version ? `the known version is ${version}` : `the known versions are ${version} and ${later}`;
  return { outcome: 'unknown_version', detail: `version ${nameOf(fields.v)}, but ${known}` };
}

/** A list that is nested deeper than the call stack cannot even be converted to text. */
function nameOf(version: unknown): string {
  if (typeof version === 'string') return JSON.stringify(version.slice(0, VERSION_SHOWN_MAX));
  return typeof version === 'object' && version !== null ? 'that is not a number' : String(version);
}

export const undecodable = (detail: string): Undecodable => ({ outcome: 'undecodable', detail });

/** Accepts a whole number from 0. Refuses -0, which JSON can express but `JSON.stringify` writes as 0. */
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && !Object.is(value, -0);
