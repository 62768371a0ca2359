-- Times are milliseconds since 1970, from the clock of the machine.

create table sessions (
  number   integer primary key autoincrement,
  project  text not null,                -- working directory, or Config.Project
  id       text not null,
  version  integer not null default 0,   -- changes with every append
  size     integer not null default 0,   -- bytes of the lines and their newlines
  spoken   integer not null default 0,   -- has a message, not only metadata
  created  integer not null,
  modified integer not null,
  writer   text,                         -- owner that made the last append
  epoch    integer not null,             -- goes up whenever the lease is taken
  owner    text,                         -- who holds the session; null: nobody
  holder   text,                         -- the same for people
  lease    integer not null,             -- its length
  expires  integer,
  unique (project, id)
);

create index sessions_id on sessions (id);

create table lines (
  session integer not null references sessions on delete cascade,
  at      integer not null,              -- bytes of the lines before it
  line    blob not null,                 -- JSON in UTF-8, without the newline
  primary key (session, at)
) without rowid;

create table blobs (
  session integer not null references sessions on delete cascade,
  name    text not null,
  data    blob not null,
  primary key (session, name)
);
