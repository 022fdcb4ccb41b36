/**
 * Structured logging. Fields come first, then a sentence, but never a token or a secret. Nothing per purchase at info.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
