/** Fields first, then a sentence, both without tokens and secrets. Log nothing per purchase at level info. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
