/** A data directory that cannot be used; the message says why and what to do. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError'
}
