import type { Log } from '../../../src/core/ports/log.js';

export interface LogLine {
  readonly level: keyof Log;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export function recordingLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      void lines.push({ level, fields: fields as Record<string, unknown>, message });
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }, lines };
}
