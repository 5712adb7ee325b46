/** The error of every patch algorithm: the HTTP status of the response, and its message. */
export type PatchStatus = 400 | 413 | 422 | 500

export class PatchError extends Error {
  readonly code = 'PATCH_REJECTED'
  readonly status: PatchStatus

  constructor(status: PatchStatus, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PatchError'
    this.status = status
  }
}
