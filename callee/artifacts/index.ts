export { type DescribeFileOptions, describeFile } from './describe-file.ts';
export { type ArtifactHandler, type ArtifactHandlerOptions, createArtifactHandler } from './handler.ts';
export { type ArtifactAddress, artifactUri, parseArtifactUri } from './uri.ts';
