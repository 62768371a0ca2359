-- {schema} is replaced by the name of the schema.

create table {schema}.sessions (
  number   bigint generated always as identity primary key,
  project  text not null,                     -- working directory, or Config.Project
  id       uuid not null,
  version  bigint not null default 0,         -- changes with every append
  size     bigint not null default 0,         -- bytes of the lines and their newlines
  spoken   boolean not null default false,    -- has a message, not only metadata
  created  timestamptz not null default clock_timestamp(),
  modified timestamptz not null default clock_timestamp(),
  writer   uuid,                              -- owner that made the last append
  epoch    bigint not null,                   -- goes up whenever the lease is taken
  owner    uuid,                              -- who holds the session; null: nobody
  holder   text,                              -- the same for people
  lease    interval not null,                 -- its length
  expires  timestamptz,
  unique (project, id)
) with (fillfactor = 50);                     -- room for the updates of each append

create index sessions_id on {schema}.sessions (id);

create table {schema}.lines (
  session bigint not null references {schema}.sessions on delete cascade,
  at      bigint not null,                    -- bytes of the lines before it
  line    bytea not null,                     -- JSON in UTF-8, without the newline
  primary key (session, at)
);

create table {schema}.blobs (
  session bigint not null references {schema}.sessions on delete cascade,
  name    text not null,
  data    bytea not null,
  primary key (session, name)
);
