/**
 * Structured logging. Each call gets the fields first and then a sentence. Neither may contain a token or a secret. Log
 * nothing per purchase at level info.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
