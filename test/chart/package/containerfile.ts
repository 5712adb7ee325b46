/** What the Containerfile says of the image that it makes. */
export interface Image {
  /** Of the folder `build`, by their place in the image. */
  readonly files: Readonly<Record<string, string>>
  readonly user: number
  readonly entryPoint: readonly string[]
}

export function readImage(containerfile: string): Image {
  const last = containerfile.split(/^FROM /m).at(-1) ?? ''
  const copied = [...last.matchAll(/^COPY --from=build (\S+) (\S+)$/gm)].map(
    ([, from = '', to = '']) => [to, from] as const,
  )
  const [, user = ''] = /^USER (\d+):\1$/m.exec(last) ?? []
  const [, entryPoint = '[]'] = /^ENTRYPOINT (.*)$/m.exec(last) ?? []
  return { files: Object.fromEntries(copied), user: Number(user), entryPoint: JSON.parse(entryPoint) as string[] }
}
